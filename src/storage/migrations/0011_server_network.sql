-- What a server may reach, as JSON: mode and hosts. A null in it, or of the whole, is the instance's default.
ALTER TABLE servers ADD COLUMN network TEXT;
