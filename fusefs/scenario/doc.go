// Package scenario holds the tests that run real programs on real mounts: what SEMANTICS promises, as people see it.
package scenario
