"""Files by their locations: paths of this machine, or addresses such as `s3://bucket/folder/file`.

A file appears when its whole content is there, and its writer tells its name: nothing here depends on renaming at an
address, nor on a listing being complete."""
