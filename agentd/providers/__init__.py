"""Model servers: one file per wire API, each turning bytes into stream events."""
