module example.org/systems

go 1.21
