/// Statements of the audit log.
extension Queries {
    package static let insertAudit = SQLFile("insert_audit", PackageResources.insert_audit_sql)
}
