package main

import (
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"os"
)

//go:embed all:ui/dist
var files embed.FS

func main() {
	pages, _ := fs.Sub(files, "ui/dist")
	http.Handle("/", http.FileServerFS(pages))
	fmt.Println(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
