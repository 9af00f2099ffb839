// Package sigmf records streams of samples as SigMF 1.2.5 and plays recordings
// back.
//
// It takes in blocks of samples with their radio.Meta, and annotations, and gives
// a recording: NAME.sigmf-data and NAME.sigmf-meta. It takes in a recording and
// gives a radio.Receiver that reads as the recorded one did, gaps and epochs
// included. It knows nothing of what samples mean.
//
// # What is written
//
// Complex samples of one channel: ci8, ci16_le or cf32_le (SigMF 1.2.5 section
// "SigMF Dataset Format"). A capture segment begins wherever samples were lost or
// the epoch changed; core:global_index is the stream's own index, so a jump in it
// is a gap (SigMF 1.2.5 section "Captures Array"). Fields of our own are in the
// namespace ringwave, declared as an optional extension and defined in
// ringwave.sigmf-ext.md beside this file.
//
// An integer c stands for the amplitude c times ringwave:scale. Recordings without
// that field have the scale that is usual, full scale 1 at 2^7 or 2^15; SigMF
// itself leaves it open.
//
// # What is read
//
// Recordings of this kind, from version 1.0.0 on and by anyone, whether or not
// they have our fields. Where the specification leaves a choice the reader is
// strict: it refuses what it would have to guess at. In particular it refuses a
// core:offset above 0, because it does not say whether captures count from it;
// captures with the same core:sample_start, of which one holds for no sample;
// keys that are there twice, which JSON leaves open; and integers above 2^63-1.
// Non-conforming datasets, several channels, real samples, archives and
// collections are not read.
package sigmf
