import { Languages, Monitor, Moon, Settings2, Sun } from "lucide-react";
import { useTranslation } from "react-i18next";
import { chooseLanguage, type Language } from "../i18n";
import { Dropdown, DropdownChoice, DropdownSeparator } from "../ui/Dropdown";
import { iconButtonClass } from "../ui/IconButton";
import { type Theme, useTheme } from "./theme";

const themeIcons: Record<Theme, typeof Sun> = { system: Monitor, light: Sun, dark: Moon };

export function Preferences() {
  const { t, i18n } = useTranslation();
  const { theme, choose } = useTheme();
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
    </Dropdown>
  );
}
