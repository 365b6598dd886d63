/// Statements about products on offer and promotional offers.
extension Queries {
    package static let readBuyer = SQLFile("read_buyer", PackageResources.read_buyer_sql)
    package static let readOrderToken = SQLFile("read_order_token", PackageResources.read_order_token_sql)
}
