import ArgumentParser

extension ListingFormat: ExpressibleByArgument {}

/// The flag of every command that prints a listing.
struct FormatFlag: ParsableArguments {
    @Option(help: "table for people, csv, or json, which is stable.")
    var format = ListingFormat.table

    /// Prints a listing in the requested format.
    func show(_ listing: Listing) {
        format.show(listing.rendered(as: format))
    }
}
