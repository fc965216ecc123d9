fn main() {
    println!("nothing to do");
}
