/// Statements about the catalog and the entitlements that its products grant.
extension Queries {
    package static let changeCatalog = SQLFile("change_catalog", PackageResources.change_catalog_sql)
    package static let deleteProducts = SQLFile("delete_products", PackageResources.delete_products_sql)
    package static let endGrants = SQLFile("end_grants", PackageResources.end_grants_sql)
    package static let insertGrants = SQLFile("insert_grants", PackageResources.insert_grants_sql)
    package static let knownEntitlements = SQLFile("known_entitlements", PackageResources.known_entitlements_sql)
    package static let listOffers = SQLFile("list_offers", PackageResources.list_offers_sql)
    package static let listProducts = SQLFile("list_products", PackageResources.list_products_sql)
    package static let lockCatalog = SQLFile("lock_catalog", PackageResources.lock_catalog_sql)
    package static let recordTerms = SQLFile("record_terms", PackageResources.record_terms_sql)
    package static let replaceOffers = SQLFile("replace_offers", PackageResources.replace_offers_sql)
    package static let upsertProducts = SQLFile("upsert_products", PackageResources.upsert_products_sql)
}
