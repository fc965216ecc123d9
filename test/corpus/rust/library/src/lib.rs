pub fn area() {}
