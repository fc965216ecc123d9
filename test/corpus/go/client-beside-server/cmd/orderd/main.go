package main

import "example.org/orders/internal/api"

func main() { api.Run() }
