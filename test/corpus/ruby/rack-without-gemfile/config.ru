run ->(env) { [200, { 'content-type' => 'text/plain' }, ["rack at #{env['PATH_INFO']}"]] }
