package round

import "ringwave/phy"

// admit asks Config.Admit about an attempt's gains, which b has shown. Nothing was
// answered yet, so that an attempt that is not admitted costs a device nothing.
func (e *Engine) admit(rx *phy.Reception) (reason string) {
	if e.cfg.Admit == nil || e.slot.Transmission != phy.TxKey {
		return ""
	}
	return e.cfg.Admit(e.slot, rx)
}
