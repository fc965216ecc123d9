package main

import (
	"embed"
	"net/http"
)

//go:embed pages/*.html
var pages embed.FS

func main() { http.ListenAndServe(":8080", http.FileServerFS(pages)) }
