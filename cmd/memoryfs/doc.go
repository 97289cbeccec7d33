// Command memoryfs keeps an organisation's agent memory: ordinary files, governed and versioned. See docs/ and
// `memoryfs help`.
package main
