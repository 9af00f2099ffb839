package config_test

import (
	"testing"

	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/setup"
)

// A configuration takes of a terahertz link what phy/channel takes, and no more.
func TestTerahertzRangesAreTheLinks(t *testing.T) {
	values := []float64{-1001, -101, -100, -21, -20, -1, 0, 1e-9, 60, 61, 80, 81, 90, 91, 100, 101, 149, 150, 400, 401, 500, 501,
		2000, 2001, 1e4, 10_001, 1e6, 1_000_001, 999_999_999, 1e9, 1e12, 1e12 + 1}
	for key, field := range map[string]func(h *config.Channel) *float64{
		"carrier_hz":          func(h *config.Channel) *float64 { return &h.CarrierHz },
		"distance_m":          func(h *config.Channel) *float64 { return &h.DistanceM },
		"transmit_gain_dbi":   func(h *config.Channel) *float64 { return &h.TransmitGainDBi },
		"receive_gain_dbi":    func(h *config.Channel) *float64 { return &h.ReceiveGainDBi },
		"transmit_power_dbm":  func(h *config.Channel) *float64 { return &h.TransmitPowerDBm },
		"noise_figure_db":     func(h *config.Channel) *float64 { return &h.NoiseFigureDB },
		"misalignment_deg":    func(h *config.Channel) *float64 { return &h.MisalignmentDeg },
		"speed_mps":           func(h *config.Channel) *float64 { return &h.SpeedMps },
		"temperature_k":       func(h *config.Channel) *float64 { return &h.TemperatureK },
		"pressure_hpa":        func(h *config.Channel) *float64 { return &h.PressureHPa },
		"vapour_density_g_m3": func(h *config.Channel) *float64 { return &h.VapourDensityGM3 },
	} {
		for _, value := range values {
			c := config.Default()
			c.Channel.Model = "thz-los"
			*field(&c.Channel) = value
			_, inLink := setup.LineOfSight(c, 0).Budget()
			if inFile := c.Check(); (inFile == nil) != (inLink == nil) {
				t.Errorf("%s = %v: the configuration says %v, the link %v", key, value, inFile, inLink)
			}
		}
	}
}
