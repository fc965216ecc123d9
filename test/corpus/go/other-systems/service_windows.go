package main

func main() { panic("not here") }
