module Words; end
