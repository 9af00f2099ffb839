package xmkckks

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"hash"
	"math"
	"testing"

	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

var update = flag.Bool("update", false, "print the known answers in place of comparing them")

// knownAnswers holds, for each set and form, SHA-256 over all that three devices
// send and the server recovers in three rounds of two attempts each: for each
// attempt b_1, b_2, b_3, then all c0, all c1 and all D in the same order, each
// prime by prime and coefficient by coefficient as little-endian 64-bit words,
// then the bits of M. Seeds are those of testContext and testDevice, gains
// 5, -3, 2, alpha = 4, W = 2, Delta f as below.
//
// Made by this test itself with
//
//	go test ./crypto/xmkckks -run TestKnownAnswers -v -update
//
// when its devices agreed with schoolbook arithmetic (product_test.go) and its
// sums with lattigo's decryptor (judge_test.go). They hold on every machine:
// none of what is hashed depends on how floating-point sums are ordered.
func knownAnswers() map[string]string {
	return map[string]string{
		"ringwave-4096-100/whole": "3da7bebd849d10367542edd878c313a24b5c75f0fc13295a5f8c76222e2334a1",
		"ringwave-4096-100/short": "f97961eec0aade51e061d8d9f236b216d92dee68335fb07dbda41ce7d201323f",
		"ringwave-8192-200/whole": "6e5e4c15cf22356f6d21808fea7a3a891d2a2020b3868ed9fd5f69676937c4e0",
		"ringwave-8192-200/short": "c22a3bfdbf7976e6dbf3822b83520bdb39b8b9ec1fc7c19d166080780a4079a7",
		"ringwave-4096/whole":     "92474a42b6111810e3d84a8ffc8131cfba7b3fc7bed84d5cd2edb1cc74e3f54d",
		"ringwave-4096/short":     "517528545fc528faafbc29b602fe63376f34aa99d0c7600a8f1eeb8f6e3ef1e9",
		"paper-4096/whole":        "2bcb12c97bbe0e58bb2d1bdda4c3b88735856b4b7b61493afebdb08516c693c3",
		"paper-4096/short":        "fe6eaca3b849fa3457aa38233c21695e940565866c2ad2882420e0006ede08fd",
		"paper-8192/whole":        "381fb2aa8d1453fa68b23ac75741633a39dd05f7c02c20d027ea8f94d42b7ece",
		"paper-8192/short":        "bec8425b6b6534c1bdfb6b233569eba4f31c34370bdfd7b841a369734ab31cdc",
		"lean-2048/whole":         "79803848f31ec83a988e17fa9efade866ee01f09ef595f631fd4eb515d853da4",
		"lean-2048/short":         "6c2a605730bbf80f353b06203814f90f084f5227f2bccf5eca949a097d69eb82",
		"demo-1024/whole":         "249ad87314450c23d62f7ceb2254c4adedfa63e30d596cc2a0fde8f46892acc0",
		"demo-1024/short":         "d1e673eea4cb55e765ab70e9c34b8787429150b03ac88e60432a34b80e4d97d0",
	}
}

func TestKnownAnswers(t *testing.T) {
	answers := knownAnswers()
	for _, set := range tried() {
		for _, form := range forms() {
			name := set.Name + "/" + form.String()
			t.Run(name, func(t *testing.T) {
				got := hashRounds(t, set, form)
				if *update {
					t.Logf("%q: %q,", name, got)
				} else if got != answers[name] {
					t.Errorf("the answer is %s, known is %s", got, answers[name])
				}
			})
		}
	}
}

func hashRounds(t *testing.T, set Params, form Form) string {
	const alpha = 4
	mu := []float64{1, 1, 1}
	design, err := NewDesign(set, form, Link{
		Mu: mu, Omega: []float64{2, 2, 2}, Alpha: alpha, DeltaMax: 1, Shares: 6,
	})
	if err != nil {
		t.Fatal(err)
	}
	c := testContext(t, set, form, 2)
	server := c.NewServer(design)
	p := newParty(t, c, []int64{5, -3, 2})
	h := sha256.New()
	for round := range uint32(3) {
		for attempt := range uint32(2) {
			delta := make([]float64, 3)
			for i := range delta {
				delta[i] = float64(i+1)/3 - float64(round)/5 + float64(attempt)/7
			}
			// The answers hold a share of every attempt, more than a device gives.
			for _, d := range p.devices {
				d.shared = false
			}
			p.attempt(t, round, attempt, delta)
			for _, tx := range []slot.Transmission{slot.TxKey, slot.TxC0, slot.TxC1, slot.TxShare} {
				for _, v := range p.sent[tx] {
					writeVector(h, v)
				}
			}
			m, err := recoverOne(server, p.sum[slot.TxC0], p.sum[slot.TxShare], alpha)
			if err != nil {
				t.Fatal(err)
			}
			h.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(m)))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func writeVector(h hash.Hash, v zq.Vector) {
	var b []byte
	for _, residues := range v {
		for _, x := range residues {
			b = binary.LittleEndian.AppendUint64(b, x)
		}
	}
	h.Write(b)
}
