module example.org/nothing

go 1.21
