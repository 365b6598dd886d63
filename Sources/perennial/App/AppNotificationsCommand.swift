import ArgumentParser
import Ledger
import Subscriptions

/// `perennial app notifications`
struct AppNotificationsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notifications",
        abstract: "Makes the address that Apple sends an app's notifications to.",
        discussion: """
            The command prints the path of the address, which cannot be shown again. An earlier address ends. Enter \
            the path after https:// and the name of your server in App Store Connect, under App Information, App Store \
            Server Notifications.

            Example:
              perennial app notifications com.example.app
            """)

    @Argument(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var bundleID: BundleID

    @ArgumentParser.Flag(help: "Take no notifications any more.")
    var off = false

    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let settings = try flags.settings(needing: [.database])
        guard !off else {
            try await withLedger(settings) { try await $0.apps.closeNotifications(of: bundleID) }
            return printLine("\(bundleID) takes no notifications any more.")
        }
        let token = try await withLedger(settings) { try await $0.apps.openNotifications(of: bundleID) }
        printLine("/v1/notifications/\(token.text)")
    }
}
