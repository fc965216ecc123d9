-- The headers of a receiver's response, as a JSON object; null if there was none, or if the attempt is older than this.
ALTER TABLE delivery_attempts ADD COLUMN response_headers TEXT;
