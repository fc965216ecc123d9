name := "shop"
