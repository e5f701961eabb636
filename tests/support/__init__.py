"""What tests are made of: servers, processes, folders, samples and embedders that fail or wait."""
