/// Statements about signed texts.
extension Queries {
    package static let storeChains = SQLFile("store_chains", PackageResources.store_chains_sql)
    package static let findChains = SQLFile("find_chains", PackageResources.find_chains_sql)
    package static let readChains = SQLFile("read_chains", PackageResources.read_chains_sql)
}
