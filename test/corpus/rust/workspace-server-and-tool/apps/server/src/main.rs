mod run;

fn main() {
    run::run();
}
