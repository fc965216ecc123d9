module example.org/embedded

go 1.21
