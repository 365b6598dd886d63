/// Statements of the examination before a start.
extension Queries {
    package static let examineDatabase = SQLFile("examine_database", PackageResources.examine_database_sql)
    package static let readSealedSecrets = SQLFile("read_sealed_secrets", PackageResources.read_sealed_secrets_sql)
}
