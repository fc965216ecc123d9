document.title = "page"
