package api

import (
	"fmt"
	"net/http"
	"os"
)

// Run answers requests.
func Run() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "orders") })
	fmt.Println(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
