"""The client, written once: ``scripts/clients`` makes ``berth._sync`` of it by unasync."""
