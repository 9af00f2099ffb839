package hosts_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/learner"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/wire"
	"ringwave/learner/model"
)

// sized is a model of so many parameters.
type sized struct {
	model.Model
	dim int
}

func (m sized) Dim() int                           { return m.dim }
func (m sized) Init(theta []float64, _ *rand.Rand) { clear(theta) }

// BenchmarkCatchUp measures what the two ways to the others' model cost a device: to replay a
// round, with its record's signature and digest, and to take in a checkpoint. A checkpoint has
// the bytes of as many rounds as bytes/record says.
func BenchmarkCatchUp(b *testing.B) {
	folder, err := identity.Create(filepath.Join(b.TempDir(), "bench"), identity.Options{Devices: 1})
	if err != nil {
		b.Fatal(err)
	}
	id, err := identity.Load(folder.IdentityPath(identity.Server, 0))
	if err != nil {
		b.Fatal(err)
	}
	verify := func(purpose string, message, signature []byte) error {
		return identity.Verify(id.Server, purpose, message, signature)
	}
	run := wire.RunID{1}
	for _, dim := range []int{785, 61241} {
		r, err := learner.NewReplica(learner.Config{Rounds: 1 << 28, BatchSize: 1, Eta: learner.HorizonLaw{X0: 1e-3, K: 40}, Gamma: learner.HorizonLaw{X0: 1e-3, K: 40}, Directions: learner.Rademacher}, sized{dim: dim}, keystream.FromInteger(1))
		if err != nil {
			b.Fatal(err)
		}
		sealed, err := wire.SealRecord(id, run, wire.Record{Round: 1, M: []float64{0.5}, Before: r.Digest()})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("replay/%d", dim), func(b *testing.B) {
			for b.Loop() {
				if _, err := wire.OpenRecords(sealed, run, 1, verify); err != nil {
					b.Fatal(err)
				}
				_ = r.Digest()
				if err := r.Apply(r.Round()+1, []float64{0.5}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(sealed)), "bytes/round")
		})
		_, theta := r.State()
		body := wire.AppendCheckpoint(nil, sealed, theta)
		b.Run(fmt.Sprintf("checkpoint/%d", dim), func(b *testing.B) {
			for b.Loop() {
				t, err := wire.OpenCheckpoint(body, run, verify)
				if err != nil {
					b.Fatal(err)
				}
				_ = learner.DigestOf(t.Round(), t.Values)
				if err := r.Restore(t.Round(), t.Values); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(body)), "bytes")
			b.ReportMetric(float64(len(body))/float64(len(sealed)), "bytes/record")
		})
	}
}
