// A recording's controls.
import { byId, make, setText, show } from "./dom.js";

const speeds = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10];

export class PlayerView {
  constructor(send) {
    this.send = (wish) => send({ player: wish });
    byId("play").onclick = () => this.toggle();
    byId("seek").oninput = () => {
      this.moved = Date.now();
      this.send({ seconds: byId("seek").value * (this.state?.duration || 0) });
    };
    byId("track").onchange = () => this.send({ track: byId("track").selectedIndex });
    byId("speed").onchange = () => this.send({ speed: Number(byId("speed").value) });
    byId("back").onclick = () => this.toMark(-1);
    byId("next").onclick = () => this.toMark(1);
  }

  toggle() {
    if (this.state) this.send({ playing: !this.state.playing });
  }

  toMark(way) {
    const p = this.state;
    if (!p?.marks?.length) return;
    const ends = p.marks.map((m) => m.to);
    const found = way > 0 ? ends.find((t) => t > p.seconds + 1e-9) : ends.filter((t) => t < p.seconds - 1e-9).pop();
    if (found !== undefined) this.send({ seconds: found });
  }

  take(p) {
    show(byId("player"), true);
    const before = this.state;
    this.state = p;
    const track = byId("track");
    if (track.length !== p.tracks.length || before?.tracks[0] !== p.tracks[0]) track.replaceChildren(...p.tracks.map((t) => make("option", "", t)));
    track.selectedIndex = p.track;
    setText(byId("play"), p.playing ? "Pause" : "Play");
    const speed = byId("speed"), list = [...new Set([...speeds, p.speed])].sort((a, b) => a - b);
    if (document.activeElement !== speed) {
      speed.replaceChildren(...list.map((s) => Object.assign(make("option", "", `${Number(s.toPrecision(3))}×`), { value: s })));
      speed.value = p.speed;
    }
    if (Date.now() - (this.moved || 0) > 700) byId("seek").value = p.duration > 0 ? p.seconds / p.duration : 0;
    setText(byId("position"), `${p.seconds.toFixed(4)} s of ${p.duration.toFixed(4)} s`);
    const here = (p.marks || []).filter((m) => m.from <= p.seconds && p.seconds <= m.to).pop();
    setText(byId("mark"), here ? `${here.void ? "⚠ " : ""}${here.text}` : "");
    setText(byId("problem"), p.problem || "");
    show(byId("problem"), !!p.problem);
  }

  clear() {
    this.state = null;
    show(byId("player"), false);
  }
}
