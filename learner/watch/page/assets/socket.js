// The connection to the program: it comes back by itself, and says when it is lost.

// silence is after how long without a word the program counts as lost, in milliseconds: it
// says something every two seconds.
const silence = 5000;

export class Socket {
  // hear gets messages, parsed; frames gets headers and DataViews of what changes fast;
  // state gets "open" or "lost"; wish returns what the page looks at.
  constructor({ hear, frames, state, wish }) {
    Object.assign(this, { hear, frames, state, wish, wait: 250, heard: 0 });
    this.open();
    setInterval(() => this.check(), 1000);
  }

  open() {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const ws = new WebSocket(`${scheme}//${location.host}/socket`);
    ws.binaryType = "arraybuffer";
    this.ws = ws;
    this.heard = Date.now();
    ws.onopen = () => {
      this.wait = 250;
      this.send(this.wish());
      this.state("open");
    };
    ws.onmessage = (e) => {
      this.heard = Date.now();
      if (typeof e.data === "string") this.hear(JSON.parse(e.data));
      else this.split(e.data);
    };
    ws.onclose = () => {
      if (this.ws !== ws) return;
      this.state("lost");
      this.again = setTimeout(() => this.open(), this.wait);
      this.wait = Math.min(2000, this.wait * 2);
    };
  }

  // check gives up a connection on which nothing comes.
  check() {
    if (this.ws.readyState !== WebSocket.OPEN || Date.now() - this.heard < silence) return;
    const old = this.ws;
    this.ws = null;
    old.close();
    this.state("lost");
    this.open();
  }

  split(data) {
    const length = new DataView(data).getUint32(0, true);
    const text = new TextDecoder().decode(new Uint8Array(data, 4, length));
    this.frames(JSON.parse(text), data, 4 + length);
  }

  send(wish) {
    if (this.ws && this.ws.readyState === WebSocket.OPEN) this.ws.send(JSON.stringify(wish));
  }
}
