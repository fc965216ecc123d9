run ->(_env) { [200, { 'content-type' => 'text/plain' }, ["by #{defined?(Puma) ? 'puma' : 'another'} in #{ENV['RACK_ENV']}"]] }
