Gem::Specification.new { |spec| spec.name = 'words' }
