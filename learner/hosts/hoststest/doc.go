// Package hoststest has what tests of benches of many hosts look at: the shares that
// devices have written down. It is for tests.
package hoststest
