/// Statements that migrate the schema and create its roles.
extension Queries {
    package static let addObservationMonths = SQLFile(
        "add_observation_months", PackageResources.add_observation_months_sql)
    package static let createRoles = SQLFile("create_roles", PackageResources.create_roles_sql)
    package static let grantRoles = SQLFile("grant_roles", PackageResources.grant_roles_sql)
    package static let isMigrated = SQLFile("is_migrated", PackageResources.is_migrated_sql)
    package static let lockMigrations = SQLFile("lock_migrations", PackageResources.lock_migrations_sql)
    package static let readCompatibility = SQLFile("read_compatibility", PackageResources.read_compatibility_sql)
    package static let readMigrations = SQLFile("read_migrations", PackageResources.read_migrations_sql)
    package static let recordMigration = SQLFile("record_migration", PackageResources.record_migration_sql)
}
