-- Set to worker where the creation of the project said that it answers no requests.
ALTER TABLE projects ADD COLUMN kind TEXT;
