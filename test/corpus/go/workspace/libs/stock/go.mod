module example.org/stock

go 1.21
