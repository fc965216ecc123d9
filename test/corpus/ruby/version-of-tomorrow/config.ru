run ->(_env) { [200, {}, ['never']] }
