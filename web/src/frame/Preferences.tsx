import { Bell, Languages, Monitor, Moon, Settings2, Sun, Volume2 } from "lucide-react";
import { useTranslation } from "react-i18next";
import { chooseLanguage, type Language } from "../i18n";
import { canNotify, useWishes, wishNotifications, wishSound } from "../store/notify";
import { Dropdown, DropdownChoice, DropdownSeparator, DropdownSwitch } from "../ui/Dropdown";
import { iconButtonClass } from "../ui/IconButton";
import { type Theme, useTheme } from "../ui/theme";

const themeIcons: Record<Theme, typeof Sun> = { system: Monitor, light: Sun, dark: Moon };

export function Preferences() {
  const { t, i18n } = useTranslation();
  const { theme, choose } = useTheme();
  const { notify, sound } = useWishes();
  return (
    <Dropdown
      label={t("preferences.title")}
      side="top"
      trigger={<Settings2 className="size-4" />}
      triggerClassName={iconButtonClass}
    >
      <DropdownChoice<Theme>
        label={t("preferences.theme")}
        value={theme}
        onChange={choose}
        options={(["system", "light", "dark"] as const).map((value) => {
          const Icon = themeIcons[value];
          return { value, label: t(`preferences.themes.${value}`), icon: <Icon /> };
        })}
      />
      <DropdownSeparator />
      <DropdownChoice<Language>
        label={t("preferences.language")}
        value={i18n.language === "zh-CN" ? "zh-CN" : "en"}
        onChange={(language) => void chooseLanguage(language)}
        options={[
          // Each language names itself, so that it can be found by those who read only that one.
          { value: "en", label: t("preferences.languages.en"), icon: <Languages /> },
          { value: "zh-CN", label: t("preferences.languages.zh-CN"), icon: <Languages /> },
        ]}
      />
      <DropdownSeparator />
      <DropdownSwitch
        icon={<Bell />}
        checked={notify}
        disabled={!canNotify()}
        onChange={(on) => void wishNotifications(on)}
      >
        {t("preferences.notify")}
      </DropdownSwitch>
      <DropdownSwitch icon={<Volume2 />} checked={sound} onChange={wishSound}>
        {t("preferences.sound")}
      </DropdownSwitch>
    </Dropdown>
  );
}
