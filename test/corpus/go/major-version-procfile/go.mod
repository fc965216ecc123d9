module example.org/ledger/v2

go 1.21
