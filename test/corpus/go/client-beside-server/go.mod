module example.org/orders

go 1.21
