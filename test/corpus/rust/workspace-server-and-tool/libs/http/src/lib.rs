pub const OK: u16 = 200;
