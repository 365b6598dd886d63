import AppStore
import ArgumentParser
import Foundation
import Tracking

/// `perennial support account-token`
struct SupportAccountTokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "account-token",
        abstract:
            "Sets the account token of a subscription or purchase at Apple's, for one that was bought without it.",
        discussion: """
            The token is a UUID, as your app passes it to Apple with a purchase. It is in Apple's answers from then on, and \
            in those about renewals. The same value again is the same request. Workers ask Apple about the purchase at \
            once; an owner that is known does not change by it.

            Example:
              perennial support account-token --app com.example.app --original-transaction-id 1000000 \\
                --token 3f2504e0-4f89-41d3-9a0c-0305e82c3301
            """)

    @Option(help: ArgumentHelp("The id of the first transaction.", valueName: "ID"))
    var originalTransactionId: String

    @Option(help: ArgumentHelp("The token, a UUID.", valueName: "UUID"))
    var token: String

    @OptionGroup var support: SupportFlags

    func validate() throws {
        guard UUID(uuidString: token) != nil else { throw ValidationError("--token is a UUID.") }
    }

    func run() async throws {
        try await support.make(
            .accountToken(originalTransactionID: originalTransactionId, token: token.lowercased()))
    }
}
