// Package rego holds the default policy: Rego v1, package memory.authz, with its own tests. `memoryfs init` copies the
// files into the store, where people edit them.
package rego
