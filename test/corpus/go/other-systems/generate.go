//go:build ignore

package main

func main() { panic("not built") }
