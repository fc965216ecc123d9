package stock

// Name is what is sold.
const Name = "stock"
