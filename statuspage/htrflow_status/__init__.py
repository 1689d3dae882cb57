"""The status site: where a requester follows campaigns in a browser and reads their results."""
