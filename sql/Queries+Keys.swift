/// Statements about API keys.
extension Queries {
    package static let createKey = SQLFile("create_key", PackageResources.create_key_sql)
    package static let findKey = SQLFile("find_key", PackageResources.find_key_sql)
    package static let readKeys = SQLFile("read_keys", PackageResources.read_keys_sql)
    package static let revokeKey = SQLFile("revoke_key", PackageResources.revoke_key_sql)
}
